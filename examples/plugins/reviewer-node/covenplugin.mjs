// Serve a coven plugin from Node.js.
//
//     import {serve} from './covenplugin.mjs';
//
//     serve({
//       async review(change, coven) {
//         await coven.log('looked at ' + change.task.title);
//         return {verdict: 'pass'};
//       },
//     });
//
// An object with a method review(change, coven) is a reviewer and returns a ReviewResponse;
// an object with a method decide(question, coven) is an arbiter and returns a
// DecideResponse. change and question are the requests of reviewer.proto and
// arbiter.proto, with names in camel case. The methods are called concurrently. An
// exception is an error of the plugin: it fails the step, and the user sees its message.
//
// The rest of this file implements the plugin protocol (coven help plugin): the handshake
// line, TLS, the health service, the broker, the shutdown.

import {generateKeyPairSync, randomBytes, sign} from 'node:crypto';
import {rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import * as grpc from '@grpc/grpc-js';
import {fromJSON} from '@grpc/proto-loader';
import protobuf from 'protobufjs';

// The build puts the text of these files into the plugin; see the script build.
import arbiter from 'contracts/coven/plugin/v1/arbiter.proto';
import reviewer from 'contracts/coven/plugin/v1/reviewer.proto';
import services from 'contracts/coven/plugin/v1/services.proto';
import goplugin from 'contracts/goplugin.proto';
import health from 'contracts/health.proto';

const SERVICES_ID = 1; // ID of coven's services on the broker
const MAX_MESSAGE = 64 << 20; // bytes
const MAX_ERROR = 4096; // characters of a message
const SHUTDOWN_GRACE = 200; // milliseconds

/** Returns an error that says that a request is wrong, for example an unknown option. */
export const invalid = message => Object.assign(new Error(message), {code: grpc.status.INVALID_ARGUMENT});

/** Returns an error that says that the plugin cannot do what was asked. */
export const unsupported = message => Object.assign(new Error(message), {code: grpc.status.UNIMPLEMENTED});

/** Returns the definitions of the protocol's services, by full name. */
function definitions() {
  const root = new protobuf.Root();
  root.addJSON(protobuf.common.get('google/protobuf/empty.proto').nested);
  for (const text of [reviewer, arbiter, services, goplugin, health]) {
    protobuf.parse(text, root);
  }
  return fromJSON(root.toJSON(), {defaults: true, enums: String, longs: Number});
}

/**
 * Coven's services for a plugin during one call. They reject with an error whose code is a
 * grpc.status, also when coven cancels the call: then signal is aborted.
 */
class Coven {
  #broker;
  #call;
  signal;

  constructor(broker, call, signal) {
    this.#broker = broker;
    this.#call = call;
    this.signal = signal;
  }

  /** Sends a prompt to an agent; returns its text and its conversation. */
  runAgent(prompt, {model = '', conversation = '', agent = ''} = {}) {
    return this.#ask('RunAgent', {prompt, model, conversation, agent});
  }

  /** Returns the complete diff of the given files, or of all files. */
  async diff(...paths) {
    return (await this.#ask('Diff', {paths})).diff;
  }

  /** Returns the content of a file of the worktree, as a Buffer. */
  async readFile(path) {
    return (await this.#ask('ReadFile', {path})).content;
  }

  /** Writes a line to the log of the step. */
  async log(text) {
    await this.#ask('Log', {text});
  }

  async #ask(method, fields) {
    const client = await this.#broker.client();
    this.signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const request = client[method]({call: this.#call, ...fields}, (error, response) => {
        this.signal.removeEventListener('abort', cancel);
        error ? reject(error) : resolve(response);
      });
      const cancel = () => request.cancel();
      this.signal.addEventListener('abort', cancel);
    });
  }
}

/** Receives the address of coven's services, and connects to it. */
class Broker {
  #client = withResolvers();
  #credentials;
  #definition;

  constructor(credentials, definition) {
    this.#credentials = credentials;
    this.#definition = definition;
  }

  listen(stream) {
    stream.on('data', info => {
      if (info.serviceId === SERVICES_ID) {
        const Client = grpc.makeGenericClientConstructor(this.#definition, 'Services');
        this.#client.resolve(new Client('unix:' + info.address, this.#credentials, {
          'grpc.ssl_target_name_override': 'localhost', 'grpc.default_authority': 'localhost',
          'grpc.max_receive_message_length': MAX_MESSAGE,
        }));
      }
    });
    stream.on('end', () => stream.end());
    stream.on('error', () => {}); // coven has gone
  }

  client() {
    return this.#client.promise;
  }
}

// Promise.withResolvers of Node.js 22.
function withResolvers() {
  const all = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, {resolve, reject}));
  return all;
}

/** Returns the DER encoding of a value of ASN.1: its tag, its length, its parts. */
function der(tag, ...parts) {
  const body = Buffer.concat(parts);
  const long = body.length < 128 ? [] : body.length < 256 ? [0x81] : [0x82, body.length >> 8];
  return Buffer.concat([Buffer.from([tag, ...long, body.length & 0xff]), body]);
}

/** Returns a key and a certificate for this process, which the handshake line contains. */
function certificate() {
  const sequence = (...parts) => der(0x30, ...parts);
  const oid = hex => der(0x06, Buffer.from(hex, 'hex'));
  const time = ms => der(0x17, Buffer.from(new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '').slice(2)));
  const extension = (id, critical, value) =>
    sequence(oid(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));

  const {publicKey, privateKey} = generateKeyPairSync('ec', {namedCurve: 'prime256v1'});
  const serial = randomBytes(16);
  serial[0] = (serial[0] & 0x3f) | 0x40; // positive, without leading zeros
  const ecdsa = sequence(oid('2a8648ce3d040302')); // with SHA-256
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from('localhost')))));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, serial), ecdsa, name,
    sequence(time(Date.now() - 60_000), time(Date.now() + 365 * 86_400_000)),
    name, publicKey.export({type: 'spki', format: 'der'}),
    der(0xa3, sequence(
      extension('551d11', false, sequence(der(0x82, Buffer.from('localhost')))), // alternative name
      extension('551d13', true, sequence(der(0x01, Buffer.from([0xff])))), // its own authority
      extension('551d25', false, sequence(oid('2b06010505070301'), oid('2b06010505070302'))), // server and client
    )));
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const own = sequence(body, ecdsa, signature);
  return {
    der: own,
    cert: Buffer.from(`-----BEGIN CERTIFICATE-----\n${own.toString('base64').match(/.{1,64}/g).join('\n')}\n-----END CERTIFICATE-----\n`),
    key: Buffer.from(privateKey.export({type: 'pkcs8', format: 'pem'})),
  };
}

/** Returns the handler that calls a method of the plugin. */
function handler(answer, broker) {
  return async (call, callback) => {
    const stop = new AbortController();
    call.on('cancelled', () => stop.abort());
    try {
      callback(null, await answer(call.request, new Coven(broker, call.request.call, stop.signal)));
    } catch (error) { // report every error to coven
      const text = String(error?.details || error?.message || error);
      callback({code: error?.code > 0 ? error.code : grpc.status.UNKNOWN, details: text.slice(0, MAX_ERROR)});
    }
  };
}

/** Ends the process with exit code 2 unless coven has started it. */
function checkStart(kind) {
  let wrong = '';
  if (process.env.COVEN_PLUGIN !== 'coven.plugin.v1') {
    wrong = `This is ${kind} plugin for coven, which starts it when needed; to install it, see: coven help plugins`;
  } else if (!(process.env.PLUGIN_PROTOCOL_VERSIONS ?? '').split(',').includes('1')) {
    wrong = 'this plugin supports version 1 of the protocol, which this coven does not offer: update the plugin';
  }
  if (wrong) {
    console.error(wrong);
    process.exit(2);
  }
}

/** Serves the plugin until coven shuts it down. */
export function serve(plugin) {
  checkStart(plugin.review ? 'a reviewer' : 'an arbiter');
  const socket = join(process.env.PLUGIN_UNIX_SOCKET_DIR || tmpdir(), 'plugin' + process.pid);
  const own = certificate();
  const coven = Buffer.from(process.env.PLUGIN_CLIENT_CERT);
  const known = definitions();
  const broker = new Broker(grpc.credentials.createSsl(coven, own.key, own.cert), known['coven.plugin.v1.Services']);
  const server = new grpc.Server({'grpc.max_receive_message_length': MAX_MESSAGE});

  function exit() {
    rmSync(socket, {force: true});
    process.exit(0); // abandoned calls would keep the process alive
  }
  server.addService(known['grpc.health.v1.Health'], {Check: (_, done) => done(null, {status: 'SERVING'})});
  server.addService(known['plugin.GRPCBroker'], {StartStream: stream => broker.listen(stream)});
  server.addService(known['plugin.GRPCController'], {
    Shutdown(_, done) {
      done(null, {});
      server.tryShutdown(exit);
      setTimeout(exit, SHUTDOWN_GRACE);
    },
  });
  if (plugin.review) {
    server.addService(known['coven.plugin.v1.Reviewer'], {Review: handler((...args) => plugin.review(...args), broker)});
  }
  if (plugin.decide) {
    server.addService(known['coven.plugin.v1.Arbiter'], {Decide: handler((...args) => plugin.decide(...args), broker)});
  }
  const credentials = grpc.ServerCredentials.createSsl(coven, [{private_key: own.key, cert_chain: own.cert}], true);
  server.bindAsync('unix:' + socket, credentials, error => {
    if (error) {
      throw error;
    }
    console.log(`1|1|unix|${socket}|grpc|${own.der.toString('base64').replace(/=+$/, '')}`);
  });
}
