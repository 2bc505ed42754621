"""Generates the CustomResourceDefinitions and the API reference from the models. Not part of the running operator."""
