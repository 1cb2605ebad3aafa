from django.urls import path

from delivery.pages import account, adding, editing, hand_over, listing, pairing, steering

app_name = "accounts"
urlpatterns = [
    path("", listing.account_list, name="list"),
    path("new/", adding.choose, name="choose"),
    path("new/<str:channel>/<str:kind>/", adding.add, name="add"),
    path("<int:pk>/", account.page, name="page"),
    path("<int:pk>/now/", account.now, name="now"),
    path("<int:pk>/pair/", pairing.pair, name="pair"),
    path("<int:pk>/pair/now/", pairing.pair_now, name="pair_now"),
    path("<int:pk>/edit/", editing.edit, name="edit"),
    path("<int:pk>/limits/", editing.limits, name="limits"),
    path("<int:pk>/pause/", steering.pause, name="pause"),
    path("<int:pk>/resume/", steering.resume, name="resume"),
    path("<int:pk>/hand-over/", hand_over.of_account, name="hand_over"),
    path("<int:pk>/approval/", steering.approval, name="approval"),
    path("<int:pk>/connect/", steering.connect, name="connect"),
    path("<int:pk>/check/", steering.check, name="check"),
    path("<int:pk>/domain/", steering.check_domain, name="check_domain"),
    path("<int:pk>/log-out/", steering.log_out, name="log_out"),
    path("<int:pk>/archive/", steering.archive, name="archive"),
    path("<int:pk>/unarchive/", steering.unarchive, name="unarchive"),
    path("<int:pk>/groups/", steering.sync_groups, name="sync"),
    path("<int:pk>/first-contacts/", steering.unlock, name="unlock"),
    path("<int:pk>/health/", steering.lift_health, name="lift_health"),
    path("<int:pk>/webhook/", steering.renew_webhook, name="renew_webhook"),
]
