"""Which certificates are trusted: those of the machine, or those that the environment names."""

import os
import ssl

from kvflow.errors import UsageError

TRUST_HINT = "SSL_CERT_FILE=FILE trusts the certificates in a file, SSL_CERT_DIR those in a folder"


def trusted() -> ssl.SSLContext | bool:
    """What SSL_CERT_FILE and SSL_CERT_DIR name; True for what the machine trusts without them.

    The HTTP library looks at them only together with the proxies of the environment.

    Raises:
        UsageError: the file cannot be read.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:
        raise UsageError(
            f"the certificates in {file} cannot be read",
            error.strerror or str(error),
            "set SSL_CERT_FILE to a file of certificates in PEM, or unset it",
        ) from error
