from django.urls import path

from people.pages import join, team

app_name = "people"
urlpatterns = [
    path("team/", team.page, name="team"),
    path("team/hand-over/", team.hand_over, name="hand_over"),
    path("team/<int:pk>/role/", team.change_role, name="role"),
    path("team/<int:pk>/remove/", team.remove, name="remove"),
    path("team/invitations/<int:pk>/withdraw/", team.withdraw, name="withdraw"),
    path("join/<str:token>/", join.join, name="join"),
]
