"""Coreference as a web service: requests that come together are resolved in one batch.

pip install fastapi uvicorn
python examples/service.py
curl localhost:8000/resolve --json '{"text": "Ada met Bob. She waved."}'
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel, Field
from spacy.language import Language
from spacy.tokens import Doc

import spacy_maverick

MAX_CHARACTERS = 100_000


class Text(BaseModel):
    text: str = Field(max_length=MAX_CHARACTERS)


class Mention(BaseModel):
    text: str
    start: int
    end: int
    score: float | None


class Entity(BaseModel):
    name: str
    mentions: list[Mention]


class Answer(BaseModel):
    resolved: str
    entities: list[Entity]


def describe(doc: Doc) -> Answer:
    entities = []
    for entity in doc._.coref_entities:
        mentions = [
            Mention(text=span.text, start=span.start_char, end=span.end_char, score=score)
            for span, score in zip(entity.mentions, entity.scores, strict=True)
        ]
        entities.append(Entity(name=entity.name, mentions=mentions))
    return Answer(resolved=doc._.coref_resolved, entities=entities)


class Batcher:
    """Collects texts for a moment and gives them to the pipeline together, in one thread."""

    def __init__(self, nlp: Language, max_batch: int = 16, seconds: float = 0.02) -> None:
        self.nlp = nlp
        self.max_batch = max_batch
        self.seconds = seconds
        self.waiting: asyncio.Queue[tuple[str, asyncio.Future]] = asyncio.Queue()

    async def resolve(self, text: str) -> Answer:
        answer = asyncio.get_running_loop().create_future()
        await self.waiting.put((text, answer))
        return await answer

    async def run(self) -> None:
        while True:
            batch = [await self.waiting.get()]
            await asyncio.sleep(self.seconds)
            while len(batch) < self.max_batch and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            try:
                results = await asyncio.to_thread(self._work, [text for text, _ in batch])
            except Exception as error:
                results = [error] * len(batch)
            for (_, answer), result in zip(batch, results, strict=True):
                if answer.cancelled():
                    continue
                if isinstance(result, Exception):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)

    def _work(self, texts: list[str]) -> list:
        return [describe(doc) for doc in self.nlp.pipe(texts, batch_size=len(texts))]


def make_app(load: Callable[[], Language] = spacy_maverick.load, max_batch: int = 16) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(load(), max_batch)
        worker = asyncio.create_task(app.state.batcher.run())
        yield
        worker.cancel()

    app = FastAPI(title="Coreference", lifespan=lifespan)

    @app.post("/resolve")
    async def resolve(text: Text) -> Answer:
        return await app.state.batcher.resolve(text.text)

    return app


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(make_app(), host="127.0.0.1", port=8000)
