// A push provider on Node.js's own HTTP/2 server and its own TLS.
//
//     node provider_node.mjs CERTIFICATE KEY LIMIT ANSWERS
//
// Listens on a free loopback port and prints it, serves one connection with at most LIMIT streams, and prints each request
// as a line of JSON before it answers. ANSWERS is a JSON file that says what is answered to which request: see PeerAnswer
// in ProviderPeer.swift.

import { readFileSync, writeSync } from "node:fs";
import { createSecureServer } from "node:http2";

const [certificate, key, limit, answersFile] = process.argv.slice(2);
const answers = JSON.parse(readFileSync(answersFile, "utf8"));

// Written at once, whatever standard output is: the reader waits for whole lines.
const report = (value) => writeSync(1, JSON.stringify(value) + "\n");

const server = createSecureServer({
  cert: readFileSync(certificate),
  key: readFileSync(key),
  settings: { maxConcurrentStreams: Number(limit) },
});
let open = 0;
let mostOpen = 0;

server.on("session", (session) => {
  session.on("goaway", (code) => {
    report({ goaway: code, most_open: mostOpen });
    server.close();
    session.destroy();
  });
});

server.on("stream", (stream, _headers, _flags, rawHeaders) => {
  open += 1;
  mostOpen = Math.max(mostOpen, open);
  stream.on("error", (error) => report({ error: String(error) }));
  const headers = [];
  for (let i = 0; i < rawHeaders.length; i += 2) headers.push([rawHeaders[i], rawHeaders[i + 1]]);
  let body = "";
  stream.setEncoding("utf8");
  stream.on("data", (text) => (body += text));
  stream.on("end", () => {
    report({ headers, body });
    // The client may open the next one as soon as it has this answer, long before "close" is told here.
    open -= 1;
    answer(stream, headers.find(([name]) => name === ":path")[1], body);
  });
});

function answer(stream, path, request) {
  const answer = answers.find(({ mark }) => path.includes(mark) || request.includes(mark));
  if (answer.interim) stream.additionalHeaders({ ":status": 103, link: "</nothing>" });
  const body = Buffer.from(answer.body.repeat(answer.copies));
  const headers = { ":status": answer.status, ...Object.fromEntries(answer.headers) };
  if (answer.trailers) stream.on("wantTrailers", () => stream.sendTrailers({ checksum: "none" }));
  stream.respond(headers, {
    endStream: body.length === 0 && !answer.trailers,
    waitForTrailers: answer.trailers,
  });
  if (body.length === 0 && !answer.trailers) return;
  for (let start = 0; start < body.length; start += answer.piece) stream.write(body.subarray(start, start + answer.piece));
  stream.end();
}

server.listen(0, "127.0.0.1", () => report({ port: server.address().port }));
// Never longer than a test.
setTimeout(() => process.exit(3), 120_000).unref();
