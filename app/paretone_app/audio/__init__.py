"""Playing sound: device, player, mixer."""
