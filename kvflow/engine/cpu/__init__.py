"""SGLang on a machine without a GPU: platform, shims, attention, link and demo model."""
