"""Sharing runs on the Hugging Face Hub: the only place that imports huggingface_hub."""
