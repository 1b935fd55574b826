// The OpenAI SDK for Node when calls go wrong: for each case the error that it threw, as JSON.
import OpenAI from 'openai';

const client = new OpenAI({ maxRetries: 0 });

async function ask({ question, stream = false, headers, with_retries }) {
  const pieces = [];
  try {
    const asking = with_retries ? new OpenAI() : client;
    const body = { model: 'm', messages: [{ role: 'user', content: question }], stream };
    const answer = await asking.chat.completions.create(body, { headers });
    if (stream) for await (const chunk of answer) pieces.push(...chunk.choices.map((c) => c.delta.content ?? ''));
    return { kinds: [], pieces };
  } catch (error) {
    const kinds = [];
    for (let kind = error.constructor; kind?.name; kind = Object.getPrototypeOf(kind)) kinds.push(kind.name);
    if (!(error instanceof OpenAI.APIError) || error.status === undefined) return { kinds, pieces };
    const { status, code, type, error: body } = error;
    return { kinds, pieces, status, code, type, body, headers: Object.fromEntries(error.headers), request: error.requestID };
  }
}

const seen = [];
for (const one of JSON.parse(process.argv[2])) seen.push(await ask(one));
console.log(JSON.stringify(seen));
