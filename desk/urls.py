"""The URLs of the desk, named like their views."""

from __future__ import annotations

from django.urls import path

from .account import factor_views as factors
from .account import passkey_views as own_keys
from .account import provider_views as providers
from .account import session_views as own_sessions
from .account import sign_in_views as signing_in
from .account import substitute_views as substitution
from .account import views
from .alarms import views as alarms
from .announced import views as announced
from .as_seen import file_views as evidence_files
from .as_seen import views as shown
from .assurance import dataset_views as sets
from .assurance import library_views as library
from .assurance import practice_views as practices
from .assurance import views as assured
from .batches import views as batch_steps
from .escalations import views as escalations
from .incidents import views as incidents
from .live import views as events
from .log import views as logs
from .notices import views as notices
from .on_call import views as on_call
from .overview import views as overviews
from .people import views as people
from .provisioning import views as provided
from .questions import views as questions
from .queue import views as queue
from .queues import views as queues
from .recovery import views as restored
from .request import holding_views as holds
from .request import move_views as moving
from .request import views as requests
from .search import views as searching
from .setup import views as first_steps
from .standing_grants import views as standing
from .statistics import views as metrics
from .stop import views as control
from .unknown import views as unknowns
from .workload import views as load

app_name = "reviews"

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in/", signing_in.sign_in, name="sign_in"),
    path("sign-in/code/", signing_in.sign_in_code, name="sign_in_code"),
    path("sign-in/passkey/", own_keys.sign_in_passkey, name="sign_in_passkey"),
    path("sign-in/provider/", providers.provider_sign_in, name="provider_sign_in"),
    path(
        "sign-in/provider/callback/",
        providers.provider_callback,
        name="provider_callback",
    ),
    path("setup/<str:token>/", first_steps.setup, name="setup"),
    path("sign-in/<str:token>/", signing_in.sign_in_by_link, name="sign_in_by_link"),
    path("sign-out/", signing_in.sign_out, name="sign_out"),
    path("queue/", queue.queue, name="queue"),
    path("overview/", overviews.overview, name="overview"),
    path("search/", searching.search, name="search"),
    path("questions/", questions.questions, name="questions"),
    path("questions/<str:pk>/", questions.question, name="question"),
    path("events/", events.events, name="events"),
    path("queue/next/", holds.queue_next, name="queue_next"),
    path("queue/load/", load.load, name="load"),
    path("queue/load/extend/", load.load_extend, name="load_extend"),
    path("queue/load/share/", load.load_share, name="load_share"),
    path("queue/fresh/", queue.queue_fresh, name="queue_fresh"),
    path("views/<slug:page>/", views.view_save, name="view_save"),
    path("views/<int:pk>/delete/", views.view_delete, name="view_delete"),
    path("requests/<str:pk>/", requests.request_detail, name="request_detail"),
    path("requests/<str:pk>/peek/", requests.peek, name="peek"),
    path("requests/<str:pk>/live/", requests.live, name="live"),
    path("requests/<str:pk>/decide/", requests.decide, name="decide"),
    path(
        "requests/<str:pk>/passkey/", requests.verdict_passkey, name="verdict_passkey"
    ),
    path("requests/<str:pk>/messages/", requests.send_message, name="send_message"),
    path(
        "requests/<str:pk>/allow/",
        standing.issue_standing_grant,
        name="issue_standing_grant",
    ),
    path("requests/<str:pk>/notices/", notices.notices, name="notices"),
    path("requests/<str:pk>/recall/", requests.recall, name="recall"),
    path("requests/<str:pk>/retry/", requests.retry, name="retry"),
    path("requests/<str:pk>/reveal/", shown.reveal, name="reveal"),
    path(
        "requests/<str:pk>/evidence/<str:sha256>/",
        evidence_files.evidence_file,
        name="evidence_file",
    ),
    path(
        "requests/<str:pk>/evidence/<str:sha256>/<int:number>/",
        evidence_files.evidence_picture,
        name="evidence_picture",
    ),
    path(
        "requests/<str:pk>/realism/<slug:flag>/",
        assured.canary_realism,
        name="canary_realism",
    ),
    path("assurance/", assured.assurance, name="assurance"),
    path("assurance/checks/", assured.second_reviews_waiting, name="second_reviews"),
    path("assurance/checks/<int:pk>/", assured.second_review, name="second_review"),
    path(
        "assurance/practice/start/<slug:kind>/",
        practices.practice_start,
        name="practice_start",
    ),
    path(
        "assurance/practice/decline/",
        practices.practice_decline,
        name="practice_decline",
    ),
    path("assurance/practice/<int:pk>/", practices.practice, name="practice"),
    path(
        "assurance/practice/<int:pk>/skip/",
        practices.practice_skip,
        name="practice_skip",
    ),
    path(
        "assurance/practice/<int:pk>/<int:number>/",
        practices.practice_item,
        name="practice_item",
    ),
    path("assurance/defects/", library.defects, name="defects"),
    path("assurance/defects/<slug:kind>/", library.defect, name="defect"),
    path(
        "assurance/defects/changes/<int:pk>/answer/",
        library.defect_answer,
        name="defect_answer",
    ),
    path("assurance/datasets/", sets.datasets, name="datasets"),
    path("assurance/datasets/<str:pk>/", sets.dataset_file, name="dataset_file"),
    path(
        "assurance/datasets/<str:pk>/answer/",
        sets.dataset_answer,
        name="dataset_answer",
    ),
    path("requests/<str:pk>/versions/<int:n>/", shown.version, name="version"),
    path("requests/<str:pk>/as-seen/<int:decision>/", shown.as_seen, name="as_seen"),
    path("requests/<str:pk>/hold/", holds.hold, name="hold"),
    path("requests/<str:pk>/release/", holds.release, name="release"),
    path("requests/<str:pk>/extend/", holds.extend, name="extend"),
    path("requests/<str:pk>/hold/ask/", holds.ask_hold, name="ask_hold"),
    path("requests/<str:pk>/hold/take/", holds.accept_hold, name="accept_hold"),
    path("requests/<str:pk>/hold/decline/", holds.decline_offer, name="decline_offer"),
    path(
        "requests/<str:pk>/hold/withdraw/", holds.withdraw_offer, name="withdraw_offer"
    ),
    path("requests/<str:pk>/hold/break/", holds.break_hold, name="break_hold"),
    path("requests/<str:pk>/hold/give/", holds.hand_over, name="hand_over"),
    path("requests/<str:pk>/move/", moving.move, name="move"),
    path("requests/<str:pk>/draft/", holds.draft, name="draft"),
    path("requests/<str:pk>/notes/", holds.note, name="note"),
    path("batches/", batch_steps.batches, name="batches"),
    path("batches/<str:pk>/", batch_steps.batch, name="batch"),
    path("batches/<str:pk>/live/", batch_steps.batch_live, name="batch_live"),
    path("batches/<str:pk>/decide/", batch_steps.batch_decide, name="batch_decide"),
    path("batches/<str:pk>/recall/", batch_steps.batch_recall, name="batch_recall"),
    path("batches/<str:pk>/retry/", batch_steps.batch_retry, name="batch_retry"),
    path("batches/<str:pk>/run/", batch_steps.batch_run, name="batch_run"),
    path("batches/<str:pk>/<str:item>/", batch_steps.batch_item, name="batch_item"),
    path("requests/<str:pk>/return/", escalations.give_back, name="give_back"),
    path("requests/<str:pk>/assign/", escalations.assign, name="assign"),
    path("requests/<str:pk>/view/", escalations.show_view, name="show_view"),
    path("requests/<str:pk>/arbitrate/", escalations.arbitrate, name="arbitrate"),
    path("escalations/", escalations.escalations, name="escalations"),
    path("escalations/<str:pk>/", escalations.escalation, name="escalation"),
    path("announced/", announced.announced, name="announced"),
    path("announced/seen/", announced.announced_seen, name="announced_seen"),
    path("effects/<str:pk>/retry/", announced.effect_retry, name="effect_retry"),
    path("unknown/", unknowns.unknown, name="unknown"),
    path("unknown/<str:pk>/", unknowns.unknown_one, name="unknown_one"),
    path("unknown/<str:pk>/look-up/", unknowns.unknown_look_up, name="unknown_look_up"),
    path("alarms/", alarms.alarms, name="alarms"),
    path("alarms/<int:pk>/", alarms.alarm, name="alarm"),
    path(
        "alarms/<int:pk>/acknowledge/",
        alarms.alarm_acknowledge,
        name="alarm_acknowledge",
    ),
    path("alarms/<int:pk>/close/", alarms.alarm_close, name="alarm_close"),
    path("standing-grants/", standing.standing_grants, name="standing_grants"),
    path(
        "standing-grants/<str:pk>/revoke/",
        standing.revoke_standing_grant,
        name="revoke_standing_grant",
    ),
    path("stop/", control.stop, name="stop"),
    path("stop/<int:pk>/", control.stopped, name="stopped"),
    path("stop/<int:pk>/live/", control.stopped_live, name="stopped_live"),
    path("stop/<int:pk>/lift/", control.lift, name="lift"),
    path("restored/", restored.restored, name="restored"),
    path("incidents/", incidents.incidents, name="incidents"),
    path("incidents/<int:pk>/end/", incidents.incident_end, name="incident_end"),
    path("on-call/", on_call.on_call, name="on_call"),
    path("on-call/<int:pk>/end/", on_call.shift_end, name="shift_end"),
    path("drills/", on_call.drill_start, name="drill_start"),
    path("drills/<int:pk>/", on_call.drill, name="drill"),
    path("reviewers/<str:who>/revoke/", control.revoke, name="revoke"),
    path("queues/", queues.queues, name="queues"),
    path("queues/<slug:name>/", queues.queue_preset, name="queue_preset"),
    path("queues/<slug:name>/past/", queues.past_queue, name="past_queue"),
    path("people/", people.people_list, name="people"),
    path("people/invite/", people.invite, name="invite"),
    path("people/provisioning/", provided.provisioning, name="provisioning"),
    path(
        "people/provisioning/<int:pk>/confirm/",
        provided.provisioning_confirm,
        name="provisioning_confirm",
    ),
    path(
        "people/provisioning/<int:pk>/revoke/",
        provided.provisioning_revoke,
        name="provisioning_revoke",
    ),
    path("people/<str:who>/", people.person, name="person"),
    path("people/<str:who>/access/", people.person_access, name="person_access"),
    path(
        "people/changes/<int:pk>/answer/",
        people.authority_answer,
        name="authority_answer",
    ),
    path("password/<str:token>/", people.password_link, name="password_link"),
    path("statistics/", metrics.statistics, name="statistics"),
    path("statistics/plots/<slug:slug>/", metrics.download_plot, name="statistics_csv"),
    path("statistics/<slug:group>/", metrics.statistics, name="statistics_group"),
    path("log/", logs.log, name="log"),
    path("log/<int:seq>/", logs.log_record, name="log_record"),
    path("log/new/<int:pk>/", logs.log_new, name="log_new"),
    path("log/exports/", logs.exports, name="exports"),
    path("log/exports/<str:pk>/", logs.export_file, name="export_file"),
    path("me/", views.me, name="me"),
    path("me/display/", views.display, name="display"),
    path("me/shortcuts/", views.keys, name="keys"),
    path("me/notifications/", views.notifications, name="notifications"),
    path("me/notifications/test/", views.send_test, name="send_test"),
    path("me/browsers/", views.register_browser, name="register_browser"),
    path("me/browsers/<int:pk>/remove/", views.remove_browser, name="remove_browser"),
    path("me/password/", people.own_password, name="own_password"),
    path("me/second-factor/", factors.second_factor, name="second_factor"),
    path("me/confirm/", providers.confirm_form, name="confirm_form"),
    path("me/passkeys/", own_keys.own_passkeys, name="passkeys"),
    path("me/passkeys/new/", own_keys.new_passkey, name="new_passkey"),
    path("me/passkeys/form/", own_keys.form_passkey, name="form_passkey"),
    path("me/sessions/", own_sessions.sessions, name="sessions"),
    path("me/substitute/", substitution.substitute, name="substitute"),
    path("me/tokens/", views.tokens, name="tokens"),
    path("me/tokens/<int:pk>/revoke/", views.token_revoke, name="token_revoke"),
    path("help/", views.help, name="help"),
]
