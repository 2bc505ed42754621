"""Keys, certificates and kubeconfigs, made by the openssl command."""

import base64
import subprocess
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.state import State, write

CA = "ca"
FRONT_PROXY_CA = "front-proxy-ca"
FRONT_PROXY_CLIENT = "front-proxy-client"


class PKI:
    """The cluster's own authorities: one for everybody, one for the front proxy of aggregated APIs."""

    def __init__(self, state: State) -> None:
        self.dir = state.pki
        self._config = write(self.dir / "openssl.cnf", "[req]\ndistinguished_name=dn\n[dn]\n")

    def cert(self, name: str) -> Path:
        """Path of a certificate."""
        return self.dir / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Path of a private key."""
        return self.dir / f"{name}.key"

    def make_authorities(self) -> None:
        """Both authorities and the key that signs ServiceAccount tokens."""
        # A SEC1 key: kube-apiserver takes no public half out of a PKCS#8 one.
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(self.key("sa")))
        for name in (CA, FRONT_PROXY_CA):
            self._certificate(
                name,
                f"/CN=headwater-{name}",
                ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"],
            )

    def issue(
        self, name: str, common_name: str, organization: str = "", addresses: tuple[str, ...] = (), ca: str = CA
    ) -> None:
        """A certificate for client and server use; `addresses` are IPv4 addresses and DNS names."""
        extensions = ["extendedKeyUsage=clientAuth,serverAuth"]
        if addresses:
            extensions.append("subjectAltName=" + ",".join(map(_alt_name, addresses)))
        subject = (f"/O={organization}" if organization else "") + f"/CN={common_name}"
        self._certificate(name, subject, extensions, ["-CA", str(self.cert(ca)), "-CAkey", str(self.key(ca))])

    def _certificate(self, name: str, subject: str, extensions: list[str], signer: list[str] | None = None) -> None:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ["-keyout", str(self.key(name)), "-out", str(self.cert(name))]
        added = [argument for extension in extensions for argument in ("-addext", extension)]
        _openssl(
            "req", "-x509", "-config", str(self._config), *curve, "-days", "365", "-subj", subject, *files,
            *(signer or []), *added,
        )  # fmt: skip

    def kubeconfig(self, path: Path, server: str, name: str) -> Path:
        """A kubeconfig for the holder of certificate `name`, readable by its owner alone."""
        cluster = {"server": server, "certificate-authority-data": _encoded(self.cert(CA))}
        user = {
            "client-certificate-data": _encoded(self.cert(name)),
            "client-key-data": _encoded(self.key(name)),
        }
        return write(
            path,
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "headwater",
                "clusters": [{"name": "headwater", "cluster": cluster}],
                "users": [{"name": name, "user": user}],
                "contexts": [{"name": "headwater", "context": {"cluster": "headwater", "user": name}}],
            },
            mode=0o600,
        )


def _alt_name(address: str) -> str:
    return f"{'IP' if address.replace('.', '').isdigit() else 'DNS'}:{address}"


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"openssl {arguments[0]} failed (version 3 is needed): {done.stderr.strip()}")
