"""One DNS question over UDP, without the machine's resolver."""

import socket
import struct


def resolve(server: str, name: str) -> list[str]:
    """IPv4 addresses of `name`."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    question = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(30)
        udp.sendto(question, (server, 53))
        answer = udp.recv(4096)
    count = struct.unpack(">H", answer[6:8])[0]
    at, found = len(question), []
    for _ in range(count):
        at = _after_name(answer, at)
        kind, _, _, length = struct.unpack(">2HIH", answer[at : at + 10])
        at += 10
        if kind == 1:
            found.append(socket.inet_ntoa(answer[at : at + length]))
        at += length
    return found


def _after_name(message: bytes, at: int) -> int:
    while message[at] and message[at] < 0xC0:
        at += message[at] + 1
    return at + (2 if message[at] else 1)
