// Times, sizes and states as people say them.

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const date = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const longDate = new Intl.DateTimeFormat([], { weekday: "long", day: "numeric", month: "long" });
const midnight = (at) => new Date(at).setHours(0, 0, 0, 0);

export const time = (at) => clock.format(at);

export function day(at) {
  const ago = Math.round((midnight(Date.now()) - midnight(at)) / 86_400_000);
  return ago === 0 ? "Today" : ago === 1 ? "Yesterday" : longDate.format(at);
}

export function when(at) {
  const ago = Math.round((midnight(Date.now()) - midnight(at)) / 86_400_000);
  return ago === 0 ? time(at) : ago === 1 ? "Yesterday" : date.format(at);
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${Math.round(bytes / 1024)} KB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

export const STATES = {
  WORKING: { word: "Connected", tone: "good", icon: "ok" },
  SCAN_QR_CODE: { word: "Not paired", tone: "warn", icon: "scan" },
  STOPPED: { word: "Disconnected", tone: "warn", icon: "stop" },
  BANNED: { word: "Banned", tone: "bad", icon: "ban" },
};
