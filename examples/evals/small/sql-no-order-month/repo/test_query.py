import sqlite3
import unittest
from pathlib import Path


def rows(data):
    database = sqlite3.connect(":memory:")
    database.executescript(Path("schema.sql").read_text())
    database.executescript(data)
    return database.execute(Path("query.sql").read_text()).fetchall()


class Query(unittest.TestCase):
    def test_names(self):
        data = """INSERT INTO customers VALUES (1, 'Cy'), (2, 'Al'), (3, 'Bo');
        INSERT INTO orders VALUES (1, 1, 5, '2026-01-03'), (2, 1, 7, '2026-02-28'), (3, 2, 1, '2026-03-01');"""
        self.assertEqual(rows(data), [("Al",), ("Bo",)])
