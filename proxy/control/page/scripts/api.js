// SPDX-License-Identifier: Apache-2.0
// Sends requests to the control API of the daemon that served this page, with the token for changes.

const kTokenKey = 'longhaul-token';

// `longhaul page` puts the token after the #, which browsers do not send. It is removed from the address bar at once.
function takeTokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  sessionStorage.setItem(kTokenKey, token);
  history.replaceState(null, '', location.pathname);
}

async function ask(path, body) {
  const headers = {};
  const token = sessionStorage.getItem(kTokenKey);
  if (token) headers.Authorization = 'Bearer ' + token;
  const options = {headers, cache: 'no-store', credentials: 'omit', redirect: 'error'};
  if (body !== undefined) {
    options.method = 'POST';
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const answer = await response.json();
  if (response.ok) return answer;
  if (response.status === 401 && token === sessionStorage.getItem(kTokenKey)) sessionStorage.removeItem(kTokenKey);
  const error = new Error(answer.error || 'HTTP status ' + response.status);
  error.status = response.status;
  throw error;
}
