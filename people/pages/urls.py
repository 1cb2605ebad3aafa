from django.urls import path

from people.pages import approval, email, join, me, recover, team

app_name = "people"
urlpatterns = [
    path("me/", me.me, name="me"),
    path("me/email/", email.change, name="email"),
    path("me/email/<str:token>/", email.confirm, name="confirm_email"),
    path("me/sessions/end/", me.log_out_everywhere, name="end_sessions"),
    path("people/<int:pk>/login/", recover.recover, name="recover"),
    path("team/", team.page, name="team"),
    path("team/approval/", approval.save, name="approval"),
    path("team/hand-over/", team.hand_over, name="hand_over"),
    path("team/<int:pk>/role/", team.change_role, name="role"),
    path("team/<int:pk>/remove/", team.remove, name="remove"),
    path("team/invitations/<int:pk>/withdraw/", team.withdraw, name="withdraw"),
    path("join/<str:token>/", join.join, name="join"),
]
