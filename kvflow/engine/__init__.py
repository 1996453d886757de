"""All that touches SGLang. Thin: it carries events to the pure modules and decisions back."""
