// Where the reader is, kept in the address: #/account/chat

export function place() {
  const [account = "", chat = ""] = location.hash.slice(2).split("/").map(decodeURIComponent);
  return { account, chat };
}

export const link = (account = "", chat = "") =>
  `#/${[account, chat].filter(Boolean).map(encodeURIComponent).join("/")}`;
