"""A TCP proxy in front of a PostgreSQL server that knows where its messages begin and end (protocol 3, in the clear),
so that it can lose the answer of one statement and nothing else."""

import asyncio
import collections
import struct
import threading

SSL_REQUEST, GSS_REQUEST, CANCEL = 80877103, 80877104, 80877102


class Connection:
    """One client's connection: what is asked on it, and whether it still passes anything on."""

    def __init__(self, number):
        self.number, self.application = number, ""
        self.running = collections.deque()  # names of the statements whose ReadyForQuery is still to come
        self.asked = []                     # names bound since the last Sync
        self.swallows = False
        self.writers = []

    def abort(self):
        for writer in self.writers:
            writer.transport.abort()


class Loss:
    """The answers of `statement` are lost, after the server has carried it out and committed: of each, `times` times,
    those whose messages `matters` takes."""

    def __init__(self, statement, times, matters):
        self.statement, self.times, self.matters = statement, times, matters


class Wire:
    """`with Wire(path) as wire`: forwards from `wire.port` of the loopback to a server's Unix socket.

    `delay` holds back each answer so many seconds; `drops_notifications` passes no NotificationResponse on. Counts:
    `connections` made so far, `statements` by name, `lost` answers by statement, `delayed` answers, `notifications`
    dropped.
    """

    def __init__(self, path):
        self.path = path
        self.delay, self.drops_notifications, self.losses = 0.0, False, []
        self.connections, self.delayed, self.notifications = 0, 0, 0
        self.statements, self.lost = collections.Counter(), collections.Counter()
        self.open = set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.server, self.port = None, 0

    def __enter__(self):
        self.thread.start()
        self.accept()
        return self

    def __exit__(self, *_):
        self.refuse()
        self.do(self.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    async def close(self):
        for connection in self.open.copy():
            connection.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def accept(self):
        """Takes connections (again)."""
        self.server = self.do(asyncio.start_server(self.serve, "127.0.0.1", self.port, reuse_address=True))
        self.port = self.server.sockets[0].getsockname()[1]

    def refuse(self):
        """Refuses new connections: nobody listens. Those that are open stay."""
        self.loop.call_soon_threadsafe(self.server.close)

    def chosen(self, application):
        return [connection for connection in self.open.copy() if connection.application.startswith(application)]

    def cut(self, application=""):
        """Resets connections; answers how many. `application`: those whose application_name begins with it."""
        chosen = self.chosen(application)
        for connection in chosen:
            self.loop.call_soon_threadsafe(connection.abort)
        return len(chosen)

    def swallow(self, application=""):
        """Half-open: they stay open, are acknowledged, and nothing passes in either direction; answers how many."""
        chosen = self.chosen(application)
        for connection in chosen:
            connection.swallows = True
        return len(chosen)

    def swallowed(self):
        """How many half-open connections their clients have not given up yet."""
        return sum(connection.swallows for connection in self.open.copy())

    def lose(self, statement, times=1, matters=lambda answer: True):
        """Loses the next answers of a prepared statement; the connection is reset each time."""
        self.losses.append(Loss(statement, times, matters))

    # On the loop's thread

    async def serve(self, reader, writer):
        self.connections += 1
        connection = Connection(self.connections)
        self.open.add(connection)
        try:
            connection.writers.append(writer)
            first = await self.startup(reader, writer)
            # Messages after the first begin with their type.
            connection.application = application_name(first)
            server_reader, server_writer = await asyncio.open_unix_connection(self.path)
            connection.writers.append(server_writer)
            server_writer.write(first)
            both = [asyncio.create_task(self.ask(connection, reader, server_writer)),
                    asyncio.create_task(self.answer(connection, server_reader, writer))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            connection.abort()
            await asyncio.gather(*both, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError):
            pass  # either side is gone
        finally:
            self.open.discard(connection)
            connection.abort()

    async def startup(self, reader, writer):
        """The message that begins a session, or asks to cancel a statement; encryption is declined before."""
        while True:
            size = await reader.readexactly(4)
            body = await reader.readexactly(struct.unpack("!I", size)[0] - 4)
            if struct.unpack("!I", body[:4])[0] not in (SSL_REQUEST, GSS_REQUEST):
                return size + body
            writer.write(b"N")

    async def ask(self, connection, reader, writer):
        while True:
            kind, message = await read_message(reader)
            if connection.swallows:
                continue
            if kind == b"B":
                connection.asked.append(message[5:].split(b"\0", 2)[1].decode())
            elif kind == b"S":
                connection.running.append(tuple(connection.asked))
                self.statements.update(connection.asked)
                connection.asked.clear()
            elif kind == b"Q":
                connection.running.append(())
            writer.write(message)
            await writer.drain()

    async def answer(self, connection, reader, writer):
        held = []  # up to ReadyForQuery, which comes after the commit
        while True:
            kind, message = await read_message(reader)
            if connection.swallows or (kind == b"A" and self.drops_notifications):
                self.notifications += kind == b"A" and not connection.swallows
                continue
            held.append(message)
            if kind == b"Z":
                names = connection.running.popleft() if connection.running else ()
                if self.loses(names, held):
                    return
                if self.delay and names:
                    self.delayed += 1
                    await asyncio.sleep(self.delay)
            elif connection.running and connection.running[0]:
                continue
            if not connection.swallows:
                writer.write(b"".join(held))
                await writer.drain()
            held.clear()

    def loses(self, names, held):
        for loss in self.losses:
            if loss.times and loss.statement in names and succeeded(held) and loss.matters(held):
                loss.times -= 1
                self.lost[loss.statement] += 1
                return True
        return False


async def read_message(reader):
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


def succeeded(messages):
    """Whether an answer has a CommandComplete: what failed has not been carried out."""
    return any(message[:1] == b"C" for message in messages)


def first_number(messages):
    """The int8 in the first column of the first row of an answer, 0 without one."""
    for message in messages:
        if message[:1] == b"D" and struct.unpack("!i", message[7:11])[0] == 8:
            return struct.unpack("!q", message[11:19])[0]
    return 0


def application_name(startup):
    """What a StartupMessage says of it; empty for a request to cancel."""
    words = startup[8:].split(b"\0")
    if struct.unpack("!I", startup[4:8])[0] == CANCEL:
        return ""
    return dict(zip(words[::2], words[1::2])).get(b"application_name", b"").decode()
