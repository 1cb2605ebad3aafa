// What the panel offers, in words. `behaviour` has the same names.

const percent = (value) => `${Math.round(value * 100)} %`;
const ms = (value) => (value < 1000 ? `${value} ms` : `${value / 1000} s`);
const share = (name, label) => ({ name, label, type: "range", max: 1, step: 0.05, said: percent });
const wait = (name, label, max) => ({ name, label, type: "range", max, step: 50, said: ms });
const whole = (name, label, max = 20_000) => ({ name, label, type: "number", max, step: 1 });
const flag = (name, label) => ({ name, label, type: "checkbox" });

export const CALM = {
  latency_ms: 0, jitter_ms: 0, error_rate: 0, error_rate_after: 0, rate_limit: 0, not_connected: false,
  ban_above_per_minute: 0, ban_above_per_hour: 0, hang: 0, cut: 0, garbage: 0,
  lock_first_contacts: false, hides_lock: false, new_chats: 0, fail_late: 0, bounce: 0, complain: 0, late_ms: 2000,
  cannot_fetch: false, fetches_late: false,
};

export const PRESETS = [
  { label: "All well", wishes: {} },
  { label: "Slow", wishes: { latency_ms: 1500, jitter_ms: 1000 } },
  { label: "Flaky", wishes: { error_rate: 0.1, error_rate_after: 0.05, cut: 0.05 } },
  { label: "Hangs", wishes: { hang: 1 } },
  { label: "Says slow down", wishes: { rate_limit: 20 } },
  { label: "Offline", wishes: { not_connected: true } },
  { label: "Bounces later", wishes: { fail_late: 0.1, bounce: 0.1, complain: 0.05 } },
  { label: "Bans above 45 a minute", wishes: { ban_above_per_minute: 45 } },
];

export const SECTIONS = [
  {
    title: "Before it accepts",
    fields: [
      share("error_rate", "Refuses for now (500)"),
      whole("rate_limit", "Messages a minute before 429"),
      flag("not_connected", "Phone not connected (503)"),
    ],
  },
  {
    title: "After it delivered",
    fields: [
      share("error_rate_after", "Answers 500 all the same"),
      share("hang", "Never answers"),
      share("cut", "Cuts the answer off"),
      share("garbage", "Answers with garbage"),
      flag("hang_delivers", "Delivers what hangs"),
      flag("idempotent", "Honours idempotency keys"),
    ],
  },
  {
    title: "Later, by webhook",
    fields: [
      share("fail_late", "Reports as failed"),
      share("bounce", "Reports as bounced"),
      share("complain", "Reports as unwanted"),
      wait("late_ms", "after", 60_000),
    ],
  },
  {
    title: "Files by their address",
    fields: [flag("cannot_fetch", "Reaches no address"), flag("fetches_late", "Fetches after it answered")],
  },
  { title: "Speed", fields: [wait("latency_ms", "Answers after", 10_000), wait("jitter_ms", "and up to", 10_000)] },
  {
    title: "Hidden limits: one more, and it is banned",
    fields: [whole("ban_above_per_minute", "Messages a minute"), whole("ban_above_per_hour", "Messages an hour")],
  },
  {
    title: "New chats",
    fields: [
      whole("new_chats", "Quota of new chats (475)"),
      flag("lock_first_contacts", "Locks first contacts (463)"),
      flag("hides_lock", "Tells of no lock when asked"),
    ],
  },
  { title: "Account", fields: [whole("groups", "Groups", 100_000)] },
];
