"""The gateway to Spark's JVM, whose calls have no time limit. Opens sockets.

A script that limits its own requests by ``socket.setdefaulttimeout`` limits every socket that is made later, in every
thread. A call to the JVM has no limit: a query may take minutes to stop, and a batch as long to be written.
"""

from __future__ import annotations

from typing import Any

from py4j.clientserver import ClientServer, ClientServerConnection, JavaClient, PythonServer


class _Connection(ClientServerConnection):  # type: ignore[misc] # untyped there
    """A connection whose limits are those of the gateway alone."""

    def _authenticate_connection(self) -> None:
        self.socket.settimeout(self.java_parameters.read_timeout or None)
        super()._authenticate_connection()

    def init_socket_from_python_server(self, socket: Any, stream: Any) -> None:
        """Take a connection that the JVM has made, for its calls of Python functions."""
        socket.settimeout(self.python_parameters.read_timeout or None)
        super().init_socket_from_python_server(socket, stream)


class _Client(JavaClient):  # type: ignore[misc] # untyped there
    def _create_new_connection(self) -> _Connection:
        connection = _Connection(self.java_parameters, self.python_parameters, self.gateway_property, self)
        connection.connect_to_java_server()
        self.set_thread_connection(connection)
        return connection


class _Server(PythonServer):  # type: ignore[misc] # untyped there
    def _create_connection(self, socket: Any, stream: Any) -> _Connection:
        connection = _Connection(
            self.java_parameters, self.python_parameters, self.gateway_property, self.gateway_client, python_server=self
        )
        connection.init_socket_from_python_server(socket, stream)
        return connection


class JvmGateway(ClientServer):  # type: ignore[misc] # untyped there
    """PySpark's gateway, with connections that no default of the process limits."""

    def _create_gateway_client(self) -> _Client:
        finalizers = self._create_finalizer_worker()
        return _Client(self.java_parameters, self.python_parameters, finalizer_deque=finalizers)

    def _create_callback_server(self, callback_server_parameters: Any) -> _Server:
        return _Server(self._gateway_client, self.java_parameters, self.python_parameters, self.gateway_property)
