"""The conformance kit: thirty checks of an agent framework's approvals, bare and with
Counterseal, with the real framework and a scripted model.

    counterseal conformance langgraph --target target.json

docs/frameworks.md lists the checks.
"""
