"""Settings of property tests that say nothing about time: the machine may be busy."""

from hypothesis import HealthCheck, settings

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
