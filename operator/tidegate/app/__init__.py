"""The StreamingApp controller: launches, upgrades, stops and deletes applications."""
