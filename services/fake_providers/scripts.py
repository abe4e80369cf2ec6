"""Which words hold for a request: those that its text has, and those that were scripted for whoever comes next."""

import sqlite3
from typing import Any

from windlass.services.fake_providers.behaviour import Behaviour, Word, words_in


class Scripts:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def add(self, provider: str, match: str, word: str, times: int | None) -> None:
        self._database.execute(
            "INSERT INTO scripts (provider, match, word, times) VALUES (?, ?, ?, ?)",
            (provider, match, str(Word.parse(word)), times),
        )

    def clear(self) -> None:
        self._database.execute("DELETE FROM scripts")

    def tell(self) -> list[dict[str, Any]]:
        rows = self._database.execute("SELECT provider, match, word, times FROM scripts ORDER BY number")
        return [dict(row) for row in rows]

    def hear(self, provider: str, call: str, text: str) -> Behaviour:
        """Uses up what was to be heard only so many times. What was scripted goes before what the text says."""
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            words = [word for word in words_in(text) if word.call == call and self._is_left(provider, text, word)]
            scripted = database.execute(
                "SELECT number, match, word FROM scripts WHERE provider = ? AND times IS NOT 0 ORDER BY number DESC",
                (provider,),
            ).fetchall()
            for row in scripted:
                word = Word.parse(row["word"])
                if word.call == call and row["match"] in text:
                    words.append(word)
                    database.execute("UPDATE scripts SET times = times - 1 WHERE number = ?", (row["number"],))
        return Behaviour({word.name: word.value for word in words})

    def _is_left(self, provider: str, text: str, word: Word) -> bool:
        if word.times is None:
            return True
        (count,) = self._database.execute(
            "INSERT INTO heard VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count",
            (provider, text, str(word)),
        ).fetchone()
        return int(count) <= word.times
