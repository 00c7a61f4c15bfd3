"""An artifact that Maven can't get is named, with what to do."""

from __future__ import annotations

import os
import shutil

import pytest

from multilang.shipping.cluster.artifacts import fetch_jars
from multilang.shipping.errors import ClusterError


@pytest.mark.skipif(shutil.which("mvn") is None and "CI" not in os.environ, reason="there is no mvn here")
def test_an_artifact_that_can_not_be_resolved_is_named_with_what_to_do(tmp_path):
    said = r"of flux-core 2\.8\.3: org\.apache\.storm:flux:pom:2\.8\.3 is in none of its repositories; name another version, or"
    with pytest.raises(ClusterError, match=said):
        fetch_jars("org.apache.storm", "flux-core", "2.8.3", tmp_path)
