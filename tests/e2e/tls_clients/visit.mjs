// SPDX-License-Identifier: Apache-2.0
// Visits a server with Node's https and http2: visit.mjs NAME ADDRESS FILE-OF-AUTHORITIES FILE-TO-UPLOAD. See README.md.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';
import tls from 'node:tls';

const [name, host, authorities, uploaded] = process.argv.slice(2);
const ca = fs.readFileSync(authorities), upload = fs.readFileSync(uploaded);
const at = {host, port: 443, servername: name, ca};

function tell(step, protocol, resumed, status, stream) {
  return new Promise((resolve, reject) => {
    const hash = crypto.createHash('sha256');
    let bytes = 0;
    stream.on('error', reject);
    stream.on('data', (piece) => (hash.update(piece), (bytes += piece.length)));
    stream.on('end', () => {
      console.log(JSON.stringify({step, protocol, resumed, status, bytes, sha256: hash.digest('hex')}));
      resolve();
    });
  });
}

// Each visit is a connection of its own; the agent keeps the sessions.
const agent = new https.Agent({keepAlive: false});
function visit1(step, method, path, body) {
  return new Promise((resolve, reject) => {
    const request = https.request({...at, agent, method, path, headers: {host: name}}, (response) =>
      tell(step, `HTTP/${response.httpVersion}`, response.socket.isSessionReused(), response.statusCode, response).then(resolve, reject));
    request.on('error', reject);
    request.end(body);
  });
}

let session;
function visit2(step, method, path, body) {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({...at, ALPNProtocols: ['h2'], session});
    socket.on('session', (newest) => (session = newest));
    const client = http2.connect(`https://${name}`, {createConnection: () => socket});
    client.on('error', reject);
    const stream = client.request({':method': method, ':path': path}, {endStream: body === undefined});
    stream.on('error', reject);
    stream.on('response', (head) =>
      tell(step, 'HTTP/2.0', socket.isSessionReused(), head[':status'], stream).then(() => client.close(resolve), reject));
    if (body !== undefined) stream.end(body);
  });
}

for (const [visit, version] of [[visit1, 1], [visit2, 2]]) {
  await visit('first', 'GET', '/page');
  await visit('again', 'GET', '/page');
  await visit('upload', 'PUT', `/by-node-${version}`, upload);
}
