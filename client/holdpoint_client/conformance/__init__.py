"""The conformance kit: thirty checks of an agent framework's approvals, bare and with
Holdpoint, with the real framework and a scripted model.

    python -m holdpoint_client.conformance langgraph --target target.json

docs/frameworks.md lists the checks.
"""
