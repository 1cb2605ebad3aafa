import { db, deliver, ids, load, redis, thousands } from './shared.mjs';

const { Queue, Worker } = await load('bullmq');

if (process.argv[2] === 'worker') {
  const worker = new Worker('targets', (job) => deliver(job.data.id),
    { connection: { ...redis, maxRetriesPerRequest: null }, concurrency: 32, removeOnComplete: { count: 0 } });
  await worker.waitUntilReady();
  await db.query('SELECT 1');
  console.log('READY');
} else {
  const queue = new Queue('targets', { connection: redis });
  await queue.waitUntilReady();
  for (const some of thousands(await ids())) await queue.addBulk(some.map((id) => ({ name: 'send', data: { id } })));
  process.exit(0);
}
