from django.urls import path

from reminders.pages import actions, follow_up_steps, media
from reminders.pages import reminders as pages
from reminders.pages.wizard import message, recipients, review, trial, when

app_name = "reminders"
urlpatterns = [
    path("", pages.reminder_list, name="list"),
    path("new", message.new, name="new"),
    path("<int:pk>/", pages.reminder, name="page"),
    path("<int:pk>/message", message.message, name="message"),
    path("<int:pk>/message/preview", message.message_preview, name="message_preview"),
    path("<int:pk>/recipients", recipients.recipients, name="recipients"),
    path("<int:pk>/when", when.when, name="when"),
    path("<int:pk>/when/preview", when.when_preview, name="when_preview"),
    path("<int:pk>/follow-ups", follow_up_steps.steps, name="follow_ups"),
    path("<int:pk>/review", review.review, name="review"),
    path("<int:pk>/test/<slug:trial>", trial.test_result, name="test_result"),
    path("<int:pk>/duplicate", actions.duplicate, name="duplicate"),
    path("<int:pk>/archive", actions.archive, name="archive"),
    path("<int:pk>/unarchive", actions.unarchive, name="unarchive"),
    path("<int:pk>/discard", actions.discard, name="discard"),
    path("<int:pk>/off", actions.switch_off, name="off"),
    path("<int:pk>/fire", actions.fire_now, name="fire"),
    path("<int:pk>/count", actions.count_again, name="count"),
    path("media/<int:pk>", media.media, name="media"),
]
