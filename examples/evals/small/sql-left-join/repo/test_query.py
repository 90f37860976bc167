import sqlite3
import unittest
from pathlib import Path


def rows(data):
    database = sqlite3.connect(":memory:")
    database.executescript(Path("schema.sql").read_text())
    database.executescript(data)
    return database.execute(Path("query.sql").read_text()).fetchall()


class Query(unittest.TestCase):
    def test_all(self):
        data = """INSERT INTO customers VALUES (1, 'Cy'), (2, 'Al'), (3, 'Al');
        INSERT INTO orders VALUES (1, 1, 5, '2026-01-01'), (2, 1, 7, '2026-01-02'), (3, 2, 1, '2026-01-02');"""
        self.assertEqual(sorted(rows(data)), [("Al", 0), ("Al", 1), ("Cy", 12)])
        self.assertEqual([name for name, _ in rows(data)], ["Al", "Al", "Cy"])
