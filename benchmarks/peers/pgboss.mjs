import { deliver, ids, load, server, thousands } from './shared.mjs';

const { PgBoss } = await load('pg-boss');
const boss = new PgBoss({ ...server, useListenNotify: true });
boss.on('error', (error) => console.error(error));
await boss.start();

if (process.argv[2] === 'worker') {
  await boss.createQueue('targets', { notify: true });
  await boss.work('targets', { batchSize: 100, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
    (jobs) => Promise.all(jobs.map((job) => deliver(job.data.id))));
  console.log('READY');
} else {
  for (const some of thousands(await ids())) await boss.insert('targets', some.map((id) => ({ data: { id } })));
  process.exit(0);
}
