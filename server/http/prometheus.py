"""Metrics for Prometheus. They hold numbers and names, never texts.

Each server has a registry, so that several can run in one process.
"""

from __future__ import annotations

from functools import partial

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from redraft.model.records import Prediction

CONTENT_TYPE = CONTENT_TYPE_LATEST

#: Seconds. A suggestion feels instant below 0.1 and is too late above 1.
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.175, 0.25, 0.375, 0.5, 0.75, 1, 1.5, 2.5, 5, 10)
STEP_BUCKETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)

#: The parts of a request's time, as they are called in ``Stats``.
STAGES = ("queue", "prompt", "prefill", "denoise", "total")


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter(
            "redraft_http_requests",
            "HTTP requests by route and status; 'dropped' if the client left.",
            ("route", "status"),
        )
        self.in_flight = gauge("redraft_predictions_in_flight", "Predictions computed or waiting.")
        self.refused = counter(
            "redraft_predictions_refused", "Predictions refused because the queue was full."
        )
        self.shared = counter(
            "redraft_predictions_shared",
            "Requests answered by a running computation of the same request.",
        )
        self._latency = histogram(
            "redraft_stage_seconds",
            "Time of a prediction by stage.",
            ("stage",),
            buckets=LATENCY_BUCKETS,
        )
        self._tokens = counter(
            "redraft_tokens",
            "Tokens by kind: prompt = reused (found in the prefix cache) + new ones; computed went "
            "through prefill; canvas were placed; repaired were drafted and replaced.",
            ("kind",),
        )
        self._steps = histogram(
            "redraft_denoise_steps", "Denoise steps of a prediction.", buckets=STEP_BUCKETS
        )
        self._answers = counter(
            "redraft_predictions",
            "Predictions by task and whether there was anything to suggest.",
            ("task", "answer"),
        )
        self._abstentions = counter(
            "redraft_abstentions",
            "Answers of the completion routes that suggest nothing, by reason.",
            ("reason",),
        )

    def count_abstention(self, reason: str) -> None:
        self._abstentions.labels(reason).inc()

    def observe(self, task: str, prediction: Prediction) -> None:
        stats = prediction.stats
        self._answers.labels(task, "candidates" if prediction.candidates else "nothing").inc()
        for stage in STAGES:
            self._latency.labels(stage).observe(getattr(stats, f"{stage}_ms") / 1_000)
        for kind in ("prompt", "reused", "computed", "canvas", "repaired"):
            self._tokens.labels(kind).inc(getattr(stats, f"{kind}_tokens"))
        self._steps.observe(stats.denoise_steps)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)


METRICS: web.AppKey[Metrics] = web.AppKey("metrics", Metrics)
