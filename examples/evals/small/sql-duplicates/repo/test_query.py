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
        data = "INSERT INTO customers VALUES (1, 'Cy'), (2, 'cy'), (3, 'Al'), (4, 'Bo'), (5, 'BO'), (6, 'bO'), (7, 'ed'), (8, 'Ed');"
        self.assertEqual(rows(data), [("bo", 3), ("cy", 2), ("ed", 2)])
