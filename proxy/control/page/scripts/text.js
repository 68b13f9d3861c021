// SPDX-License-Identifier: Apache-2.0
// Numbers, sizes, rates and times as text.

function threeDigits(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

function withUnit(value, step, units) {
  let unit = 0;
  for (; Math.abs(value) >= step * 0.9995 && unit + 1 < units.length; ++unit) value /= step;
  return (unit === 0 ? String(Math.round(value)) : threeDigits(value)) + '\u00a0' + units[unit];
}

const bytesText = bytes => withUnit(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
const rateText = bits => withUnit(bits, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
const percent = share => (100 * share).toFixed(share > 0.0995 && share < 0.985 ? 0 : 1) + '\u00a0%';
const orDash = (value, text) => value === null || value === undefined ? '–' : text(value);
const msText = ms => threeDigits(Math.max(ms, 0)) + '\u00a0ms';

function ageText(seconds) {
  if (seconds < 60) return Math.floor(seconds) + '\u00a0s';
  if (seconds < 3600) return Math.floor(seconds / 60) + '\u00a0min';
  if (seconds < 86400) return Math.floor(seconds / 3600) + '\u00a0h ' + Math.floor(seconds % 3600 / 60) + '\u00a0min';
  return Math.floor(seconds / 86400) + '\u00a0d ' + Math.floor(seconds % 86400 / 3600) + '\u00a0h';
}

const kApplications = {21: 'FTP', 22: 'SSH', 25: 'SMTP', 53: 'DNS', 80: 'HTTP', 88: 'Kerberos', 110: 'POP3', 111: 'RPC',
  135: 'MS-RPC', 139: 'SMB', 143: 'IMAP', 389: 'LDAP', 443: 'HTTPS', 445: 'SMB', 465: 'SMTPS', 587: 'SMTP',
  636: 'LDAPS', 873: 'rsync', 993: 'IMAPS', 995: 'POP3S', 1433: 'SQL Server', 1521: 'Oracle', 2049: 'NFS', 3260: 'iSCSI',
  3306: 'MySQL', 3389: 'RDP', 5432: 'PostgreSQL', 5900: 'VNC', 8080: 'HTTP'};
const portText = port => port === null ? 'other ports' : kApplications[port] ? `${port} ${kApplications[port]}` : String(port);
