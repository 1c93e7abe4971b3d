"""The one client for language models: OpenAI-compatible endpoints, and model folders."""
