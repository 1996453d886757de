"""Which addresses reach nothing but this machine."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether an address, or a host's name, can be reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
