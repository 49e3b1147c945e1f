"""The desk's addresses (ux.md 2.2)."""

from __future__ import annotations

from django.urls import path

from .views import (
    batches,
    control,
    events,
    holding,
    lists,
    preferences,
    requests,
    session,
    shown,
    tokens,
)

app_name = "reviews"

urlpatterns = [
    path("", lists.home, name="home"),
    path("sign-in/", session.sign_in, name="sign_in"),
    path("sign-out/", session.sign_out, name="sign_out"),
    path("queue/", lists.queue, name="queue"),
    path("events/", events.events, name="events"),
    path("queue/next/", holding.queue_next, name="queue_next"),
    path("queue/fresh/", lists.queue_fresh, name="queue_fresh"),
    path("requests/<str:pk>/", requests.request_detail, name="request_detail"),
    path("requests/<str:pk>/live/", requests.live, name="live"),
    path("requests/<str:pk>/decide/", requests.decide, name="decide"),
    path("requests/<str:pk>/recall/", requests.recall, name="recall"),
    path("requests/<str:pk>/retry/", requests.retry, name="retry"),
    path("requests/<str:pk>/reveal/", shown.reveal, name="reveal"),
    path("requests/<str:pk>/versions/<int:n>/", shown.version, name="version"),
    path("requests/<str:pk>/as-seen/<int:decision>/", shown.as_seen, name="as_seen"),
    path("requests/<str:pk>/lease/", holding.lease, name="lease"),
    path("requests/<str:pk>/release/", holding.release, name="release"),
    path("requests/<str:pk>/extend/", holding.extend, name="extend"),
    path("requests/<str:pk>/hold/ask/", holding.ask_hold, name="ask_hold"),
    path("requests/<str:pk>/hold/take/", holding.accept_hold, name="accept_hold"),
    path("requests/<str:pk>/hold/break/", holding.break_hold, name="break_hold"),
    path("requests/<str:pk>/hold/give/", holding.hand_over, name="hand_over"),
    path("requests/<str:pk>/draft/", holding.draft, name="draft"),
    path("requests/<str:pk>/notes/", holding.note, name="note"),
    path("batches/", batches.batches, name="batches"),
    path("batches/<str:pk>/", batches.batch, name="batch"),
    path("batches/<str:pk>/live/", batches.batch_live, name="batch_live"),
    path("batches/<str:pk>/decide/", batches.batch_decide, name="batch_decide"),
    path("batches/<str:pk>/recall/", batches.batch_recall, name="batch_recall"),
    path("batches/<str:pk>/retry/", batches.batch_retry, name="batch_retry"),
    path("batches/<str:pk>/run/", batches.batch_run, name="batch_run"),
    path("batches/<str:pk>/<str:item>/", batches.batch_item, name="batch_item"),
    path("escalations/", lists.escalations, name="escalations"),
    path("announced/", lists.announced, name="announced"),
    path("unknown/", control.unknown, name="unknown"),
    path("unknown/<str:pk>/", control.settle, name="settle"),
    path("stop/", control.stop, name="stop"),
    path("stop/<int:pk>/lift/", control.lift, name="lift"),
    path("log/", lists.log, name="log"),
    path("log/<int:pk>/", lists.log_record, name="log_record"),
    path("me/", preferences.me, name="me"),
    path("me/display/", preferences.display, name="display"),
    path("me/shortcuts/", preferences.keys, name="keys"),
    path("me/tokens/", tokens.tokens, name="tokens"),
    path("me/tokens/<int:pk>/revoke/", tokens.token_revoke, name="token_revoke"),
    path("help/", lists.help, name="help"),
]
