// A reviewer in Node.js that finds what was left in JavaScript for debugging, and JSON that
// does not parse.
//
// It checks only lines that the change adds, and JSON files that it touches. Option:
// severity, of the calls of console.log (warning).

import {invalid, serve} from './covenplugin.mjs';

const SCRIPT = /\.[cm]?[jt]sx?$/;
const MAX_FINDINGS = 1000;

/** Yields the lines that a diff adds: file, number and text. */
function* added(diff) {
  let file = '', number = 0, inside = false;
  for (const line of diff.split('\n')) {
    const hunk = /^@@ -\S+ \+(\d+)/.exec(line);
    if (line.startsWith('diff --git ')) {
      inside = false;
    } else if (!inside && line.startsWith('+++ b/')) {
      file = line.slice(6).replace(/\t$/, '');
    } else if (hunk) {
      [number, inside] = [Number(hunk[1]), true];
    } else if (inside && line.startsWith('+')) {
      yield {file, number: number++, text: line.slice(1)};
    } else if (inside && !/^[-\\]/.test(line)) {
      number++;
    }
  }
}

/** Returns what a line of a script left behind, or undefined. */
function leftover(text, severity) {
  if (/^\s*debugger\b/.test(text)) {
    return {severity: 'error', message: 'a debugger statement is left', suggestion: 'remove it'};
  }
  if (/\b(describe|it|test)\.only\(/.test(text)) {
    return {severity: 'error', message: 'only this test runs', suggestion: 'remove .only'};
  }
  if (/\bconsole\.log\(/.test(text)) {
    return {severity, message: 'console.log is left', suggestion: 'remove it, or use a logger'};
  }
}

/** Returns findings about the JSON files of a change. */
async function unreadable(files, coven) {
  const findings = [];
  for (const {path} of files.filter(f => f.status !== 'D' && f.path.endsWith('.json'))) {
    let text;
    try {
      text = (await coven.readFile(path)).toString();
    } catch {
      continue; // not a regular file
    }
    try {
      JSON.parse(text);
    } catch (error) {
      findings.push({severity: 'error', file: path, message: 'the file is not JSON: ' + error.message});
    }
  }
  return findings;
}

serve({
  async review(change, coven) {
    const {severity = 'warning', ...unknown} = change.options;
    if (Object.keys(unknown).length > 0) {
      throw invalid(`no option ${Object.keys(unknown).join(', ')} (known: severity)`);
    }
    const diff = change.truncated ? await coven.diff() : change.diff;
    const known = new Set(change.files.map(f => f.path));
    const findings = await unreadable(change.files, coven);
    for (const {file, number, text} of added(diff)) {
      const found = SCRIPT.test(file) && known.has(file) && leftover(text, severity);
      if (found) {
        findings.push({...found, file, line: number});
      }
    }
    findings.sort((a, b) => Number(b.severity === 'error') - Number(a.severity === 'error'));
    await coven.log(`${change.files.length} files, ${findings.length} findings`);
    const bad = findings.some(f => f.severity === 'error');
    return {verdict: bad ? 'fail' : 'pass', findings: findings.slice(0, MAX_FINDINGS)};
  },
});
