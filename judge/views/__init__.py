"""Ways to show a Record; its JSON is `judge.record.to_json`."""
