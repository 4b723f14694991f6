"""A producer of very many rows: a thousand a statement, each committed id written to a file of its own."""

import threading

import psycopg

SIZE = 1000


class Bulk(threading.Thread):
    """Commits the rows `first` to `last` by `statement`, which takes these two and answers id and deadline (seconds
    since 1970) of each. A line of the file is both, written when the server has said that they are committed."""

    def __init__(self, connection, statement, first, last, path):
        super().__init__(daemon=True)
        self.connection, self.statement, self.first, self.last, self.path = connection, statement, first, last, path
        self.committed, self.failure, self.told = 0, None, threading.Event()

    def run(self):
        try:
            with psycopg.connect(self.connection, autocommit=True) as session, open(self.path, "w") as file:
                for first in range(self.first, self.last + 1, SIZE):
                    if self.told.is_set():
                        return
                    rows = session.execute(self.statement, {
                        "first": first, "last": min(self.last, first + SIZE - 1)}).fetchall()
                    file.writelines(f"{name} {deadline}\n" for name, deadline in rows)
                    self.committed += len(rows)
        except Exception as failure:  # whoever waits for the rows says so
            self.failure = failure

    def is_done(self):
        """Whether all its rows are committed; raises what has kept it from that."""
        if self.failure:
            raise self.failure
        return not self.is_alive()

    def end(self):
        self.told.set()
        self.join(60)
