// What both queues of Node.js share: read the row, send it, record it.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are installed apart from these files.
const installed = createRequire(`${process.env.PEERS}/package.json`);
export const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { Pool: Database } = (await load('pg')).default;
const { Pool: Http } = await load('undici');

const sink = new URL(process.env.SINK);
const http = new Http(sink.origin, { connections: 32, pipelining: 1 });
export const server = JSON.parse(process.env.PEER_DATABASE);
export const redis = JSON.parse(process.env.PEER_REDIS);
export const db = new Database({ ...server, max: 10 });

export async function deliver(id) {
  const { rows: [row] } = await db.query('SELECT account, address, body FROM peer_target WHERE id = $1', [id]);
  const { statusCode, body } = await http.request({
    path: `/api/${row.account}/messages`, method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': `${process.env.PEER}-${id}` },
    body: JSON.stringify({ to: row.address, text: row.body }),
  });
  await body.json();
  if (statusCode !== 201) throw new Error(`status ${statusCode}`);
  await db.query("UPDATE peer_target SET status = 'sent', sent_at = clock_timestamp() WHERE id = $1", [id]);
}

export async function ids() {
  return (await db.query('SELECT id FROM peer_target ORDER BY id')).rows.map((row) => row.id);
}

export function* thousands(all) {
  for (let from = 0; from < all.length; from += 1000) yield all.slice(from, from + 1000);
}
