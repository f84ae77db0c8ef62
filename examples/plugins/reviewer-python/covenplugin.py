"""Serve a coven plugin from Python.

    import covenplugin

    class Reviewer:
        def review(self, change, coven):
            coven.log("looked at " + change.task.title)
            return covenplugin.Review(verdict="pass")

    covenplugin.serve(Reviewer())

An object with a method review(change, coven) is a reviewer and returns a Review; an
object with a method decide(question, coven) is an arbiter and returns a Decision. The
methods are called concurrently, in threads. change, question, Review, Decision and
Finding are the messages of reviewer.proto and arbiter.proto. An exception is an error of
the plugin: it fails the step, and the user sees its message.

The rest of this file implements docs/formats/plugin.md: the handshake line, TLS, the
health service, the broker, the shutdown.
"""

import base64
import datetime
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import goplugin_pb2 as goplugin
import health_pb2 as health
from coven.plugin.v1 import arbiter_pb2, reviewer_pb2, services_pb2

Review, Finding, Decision = reviewer_pb2.ReviewResponse, reviewer_pb2.Finding, arbiter_pb2.DecideResponse

SERVICES_ID = 1  # ID of coven's services on the broker
LIMITS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]
CODES = [  # status codes of exceptions; all others are errors with their message
    (NotImplementedError, grpc.StatusCode.UNIMPLEMENTED),
    (ValueError, grpc.StatusCode.INVALID_ARGUMENT),
    (TimeoutError, grpc.StatusCode.DEADLINE_EXCEEDED),
]


class Coven:
    """Coven's services for a plugin during one call. They raise grpc.RpcError, whose
    code() is the reason, also when coven cancels the call."""

    def __init__(self, broker, call, context):
        self._broker, self._call, self._context = broker, call, context

    def cancelled(self):
        """Reports whether coven has cancelled the call."""
        return not self._context.is_active()

    def run_agent(self, prompt, model="", conversation="", agent=""):
        """Sends a prompt to an agent, or to the one with this definition; returns its text
        and its conversation."""
        got = self._ask("RunAgent", prompt=prompt, model=model, conversation=conversation, agent=agent)
        return got.text, got.conversation

    def diff(self, *paths):
        """Returns the complete diff of the given files, or of all files."""
        return self._ask("Diff", paths=paths).diff

    def read_file(self, path):
        """Returns the content of a file of the worktree, as bytes."""
        return self._ask("ReadFile", path=path).content

    def log(self, text):
        """Writes a line to the log of the step."""
        self._ask("Log", text=text)

    def _ask(self, method, **fields):
        request = getattr(services_pb2, method + "Request")(call=self._call, **fields)
        response = getattr(services_pb2, method + "Response")
        stub = self._broker.channel().unary_unary(
            "/coven.plugin.v1.Services/" + method, type(request).SerializeToString, response.FromString)
        future = stub.future(request)
        if not self._context.add_callback(future.cancel):
            future.cancel()
        return future.result()


class Broker:
    """Receives the address of coven's services, and connects to it."""

    def __init__(self, credentials):
        self._credentials, self._known, self._channel = credentials, threading.Event(), None

    def listen(self, infos, _context):
        for info in infos:
            if info.service_id == SERVICES_ID:
                self._channel = grpc.secure_channel(
                    "unix:" + info.address, self._credentials, LIMITS + [("grpc.ssl_target_name_override", "localhost")])
                self._known.set()
        yield from ()  # a plugin offers nothing on the broker

    def channel(self):
        if not self._known.wait(30):
            raise TimeoutError("coven has not sent the address of its services")
        return self._channel


def certificate():
    """Returns a key and a certificate for this process, which the handshake line contains."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.utcnow()
    return key, (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1)).not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256()))


def unary(request, answer):
    return grpc.unary_unary_rpc_method_handler(answer, request.FromString, lambda m: m.SerializeToString())


def method(impl, request, broker):
    """Returns the handler that calls a method of the plugin."""
    def answer(message, context):
        try:
            return impl(message, Coven(broker, message.call, context))
        except Exception as error:  # report every error to coven
            code = next((c for kind, c in CODES if isinstance(error, kind)), grpc.StatusCode.UNKNOWN)
            context.abort(code, str(error) or type(error).__name__)
    return unary(request, answer)


def serve(plugin):
    """Serves the plugin until coven shuts it down. It does not return."""
    if os.environ.get("COVEN_PLUGIN") != "coven.plugin.v1":
        kind = "a reviewer" if hasattr(plugin, "review") else "an arbiter"
        print("This is %s plugin for coven, which starts it when needed; to install it, see: coven help plugins" % kind,
              file=sys.stderr)
        sys.exit(2)
    if "1" not in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(","):
        sys.exit("this plugin supports version 1 of the protocol, which this coven does not offer: update the plugin")
    client = os.environ["PLUGIN_CLIENT_CERT"].encode()
    key, own = certificate()
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    own_pem = own.public_bytes(serialization.Encoding.PEM)
    broker, over = Broker(grpc.ssl_channel_credentials(client, key_pem, own_pem)), threading.Event()

    def shutdown(_request, _context):
        over.set()
        return goplugin.Empty()

    services = {
        "grpc.health.v1.Health": {"Check": unary(
            health.HealthCheckRequest, lambda _r, _c: health.HealthCheckResponse(status="SERVING"))},
        "plugin.GRPCController": {"Shutdown": unary(goplugin.Empty, shutdown)},
        "plugin.GRPCBroker": {"StartStream": grpc.stream_stream_rpc_method_handler(
            broker.listen, goplugin.ConnInfo.FromString, lambda m: m.SerializeToString())},
    }
    if hasattr(plugin, "review"):
        services["coven.plugin.v1.Reviewer"] = {"Review": method(plugin.review, reviewer_pb2.ReviewRequest, broker)}
    if hasattr(plugin, "decide"):
        services["coven.plugin.v1.Arbiter"] = {"Decide": method(plugin.decide, arbiter_pb2.DecideRequest, broker)}
    server = grpc.server(ThreadPoolExecutor(max_workers=64), options=LIMITS)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(n, m) for n, m in services.items()])
    home = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.gettempdir()
    socket = os.path.join(home, "plugin%d" % os.getpid())
    server.add_secure_port("unix:" + socket, grpc.ssl_server_credentials([(key_pem, own_pem)], client, True))
    server.start()
    line = base64.b64encode(own.public_bytes(serialization.Encoding.DER)).decode().rstrip("=")
    print("1|1|unix|%s|grpc|%s" % (socket, line), flush=True)
    over.wait()
    server.stop(0.2).wait()
    if os.path.exists(socket):
        os.remove(socket)
    os._exit(0)  # threads of abandoned calls would keep the process alive
