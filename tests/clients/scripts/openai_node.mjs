// The OpenAI SDK for Node: the calls that are given, as JSON what it saw.
import OpenAI from 'openai';

const client = new OpenAI({ maxRetries: 0 });
const settings = { model: process.env.MODEL, temperature: 0, max_tokens: 40 };

async function plain(question) {
  const { data, response } = await client.chat.completions
    .create({ ...settings, messages: [{ role: 'user', content: question }] }).withResponse();
  return {
    cache: response.headers.get('x-cache'),
    coalesced: response.headers.get('x-cache-coalesced'),
    text: data.choices[0].message.content,
    finish: data.choices[0].finish_reason,
    usage: data.usage.total_tokens,
    id: data.id,
    request: data._request_id,
  };
}

async function streamed(question) {
  const { data, response } = await client.chat.completions.create({
    ...settings, messages: [{ role: 'user', content: question }], stream: true, stream_options: { include_usage: true },
  }).withResponse();
  const chunks = [];
  for await (const chunk of data) chunks.push(chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices);
  return {
    cache: response.headers.get('x-cache'),
    coalesced: response.headers.get('x-cache-coalesced'),
    text: choices.map((choice) => choice.delta.content ?? '').join(''),
    finish: choices.find((choice) => choice.finish_reason).finish_reason,
    usage: chunks.at(-1).usage.total_tokens,
    id: chunks[0].id,
    request: response.headers.get('x-request-id'),
  };
}

const seen = [];
for (const [kind, question] of JSON.parse(process.argv[2])) seen.push(await { plain, streamed }[kind](question));
console.log(JSON.stringify(seen));
