"""Export of profiles to forms that run without Paretone."""
