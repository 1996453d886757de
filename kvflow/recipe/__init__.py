"""Recipes: YAML files that describe a workflow."""
