"""The three families of models: flow matching, language and masked, and what their models share."""
