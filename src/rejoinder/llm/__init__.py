"""The one client for language models behind OpenAI-compatible endpoints."""
