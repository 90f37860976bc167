import sqlite3
import unittest
from pathlib import Path


def rows(data):
    database = sqlite3.connect(":memory:")
    database.executescript(Path("schema.sql").read_text())
    database.executescript(data)
    return database.execute(Path("query.sql").read_text()).fetchall()


class Query(unittest.TestCase):
    def test_sums(self):
        data = """INSERT INTO customers VALUES (1, 'Cy');
        INSERT INTO orders VALUES (1, 1, 5, '2026-01-03'), (2, 1, 7, '2026-01-01'), (3, 1, 1, '2026-01-01'), (4, 1, 2, '2026-01-02');"""
        self.assertEqual(rows(data), [("2026-01-01", 8, 8), ("2026-01-02", 2, 10), ("2026-01-03", 5, 15)])
