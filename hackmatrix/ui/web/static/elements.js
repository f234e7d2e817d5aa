// The elements of a page.

/**
 * The element with an id that the page's HTML has. Its kind is not checked: the HTML says it.
 *
 * @param {string} id
 * @returns {any}
 */
export const $ = (id) => document.getElementById(id);

/**
 * The first element within another that a selector means, null if there is none.
 *
 * @param {string} selector
 * @param {any} [within]
 * @returns {any}
 */
export const one = (selector, within = document) => within.querySelector(selector);

/**
 * All elements within another that a selector means.
 *
 * @param {string} selector
 * @param {any} [within]
 * @returns {any[]}
 */
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/**
 * What an event happened to.
 *
 * @param {{ target: any }} event
 * @returns {any}
 */
export const targetOf = (event) => event.target;
