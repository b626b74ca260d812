"""Every error Redraft raises on purpose. Messages say what happened, the value, what to do next.

Entry points translate these once: LSP to a response error or a status, HTTP to a status code, the
command line to one red line and an exit code. Anything else that escapes is a bug of ours.
"""

from __future__ import annotations


class RedraftError(Exception):
    """The root; ``code`` is stable and machine-readable, the message is for people."""

    code = "redraft_error"
    http_status = 500


class InvalidRequest(RedraftError):
    """A field of a request is missing, of the wrong type or out of range."""

    code = "invalid_request"
    http_status = 400


class ContextOverflow(InvalidRequest):
    """A conversation is longer than what the model reads."""

    code = "context_length_exceeded"


class NoChatTemplate(InvalidRequest):
    """The loaded weights know no conversations."""

    code = "no_chat_template"


class InvalidAnswer(RedraftError):
    """The model's answer does not follow the format."""

    code = "invalid_answer"


class UnknownModel(InvalidRequest):
    code = "model_not_found"
    http_status = 404


class Unauthorized(RedraftError):
    code = "invalid_api_key"
    http_status = 401


class ModelNotReady(RedraftError):
    """The model is being fetched or loaded."""

    code = "model_not_ready"
    http_status = 503


class Overloaded(RedraftError):
    """The queue is full."""

    code = "overloaded"
    http_status = 429

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class PredictionTimeout(RedraftError):
    """A prediction took longer than the engine allows."""

    code = "prediction_timeout"
    http_status = 504


class EngineGone(RedraftError):
    """The engine process does not answer."""

    code = "engine_gone"
    http_status = 502


class WeightsError(RedraftError):
    """Weights are missing, incomplete, corrupt or of another kind than expected."""

    code = "weights_error"


class FetchFailed(WeightsError):
    """A source of weights could not deliver; another may."""

    code = "fetch_failed"


class SourceSilent(FetchFailed):
    """A source of weights does not answer, and will not for a while."""

    code = "source_silent"


class InstallError(RedraftError):
    """The installation lacks something, or holds two things that exclude each other."""

    code = "install_error"


class EditorSetupError(RedraftError):
    """An editor cannot be set up, or what was set up cannot be undone."""

    code = "editor_setup_error"


class SettingsError(RedraftError):
    """A setting or option has a value that cannot be used."""

    code = "settings_error"


class StaleDocument(RedraftError):
    """The document has moved on since the version the request names."""

    code = "content_modified"
    http_status = 409
