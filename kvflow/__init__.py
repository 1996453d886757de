"""kvflow: workflow-aware KV caching for LLM agents, on stock SGLang."""

__version__ = "0.1.0.dev0"
