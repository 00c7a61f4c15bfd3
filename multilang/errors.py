"""The class on top of all errors of this library, and the errors of a run that the engines share."""

from __future__ import annotations


class MultilangError(Exception):
    """An error of this library. Each of its other errors is a subclass, which most often is a ValueError or the like, too.

    Attributes:
        is_explained: True: the message is complete. The error is reported without a traceback, unless another exception caused
            it (``raise ... from``): that one may be of user code. So a message with the error of a file, a database or a server
            is raised ``from None``.
    """

    is_explained = False


class LocalClusterError(MultilangError):
    """The embedded cluster can't continue; the text names the component and task, and the fix."""


class SparkJobError(MultilangError):
    """A job on Spark can't start or continue; the text names the component, if it is one's fault, and the fix."""


class TaskStartError(LocalClusterError, SparkJobError):
    """A task died each time that it was started, before it did anything. Both engines raise it."""
