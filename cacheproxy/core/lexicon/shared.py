"""Names and signs that all languages of the guards share: units, languages, formats. Data only.

A unit is ``name: words``; `core.guards.quantities` knows how names convert.
"""

UNITS = """
ms: ms millisecond milliseconds msec | s: s sec secs second seconds | min: min mins minute minutes | h: h hr hrs hour
hours hourly per_hour each_hour every_hour | day: d day days daily per_day each_day every_day | week: wk week weeks
weekly per_week each_week every_week | month: month months monthly per_month each_month every_month | year: per_year
each_year every_year yr yrs year years yearly annual annually annum | decade: decade decades | century: century
centuries | ng: ng | mcg: mcg µg μg ug microgram micrograms | mg: mg milligram milligrams | g: g gram grams gramme
grammes gr | kg: kg kgs kilo kilos kilogram kilograms | ton: ton tons tonne tonnes | oz: oz ounce ounces | lb: lb lbs
pound pounds | nm: nm nanometer nanometers | mm: mm millimeter millimeters millimetre millimetres | cm: cm centimeter
centimeters centimetre centimetres | m: m meter meters metre metres | km: km kms kilometer kilometers kilometre
kilometres | in: inch inches | ft: ft foot feet | yd: yd yard yards | mi: mile miles | ml: ml milliliter milliliters
millilitre millilitres mls | cl: cl centiliter centiliters centilitre centilitres | l: liter liters litre litres |
gal: gallon gallons gal | pint: pint pints | cup: cup cups | tbsp: tbsp tablespoon tablespoons | tsp: tsp teaspoon
teaspoons | bit: bit bits | byte: byte bytes | kb: kb kilobyte kilobytes | mb: mb megabyte megabytes | gb: gb gigabyte
gigabytes gig gigs | tb: tb terabyte terabytes | pb: pb petabyte petabytes | kib: kib | mib: mib | gib: gib | tib: tib
| kbit: kbps kbit | mbit: mbps mbit | gbit: gbps gbit | hz: hz hertz | khz: khz | mhz: mhz | ghz: ghz | w: watt watts
| kw: kw kilowatt kilowatts | kwh: kwh | v: volt volts | a: amp amps ampere amperes | ohm: ohm ohms | j: joule joules
| kj: kj | cal: calorie calories | kcal: kcal | pa: pascal pascals | bar: bars | psi: psi | kmh: km/h kmh kph kmph |
mph: mph | mps: m/s | knot: knots | celsius: celsius centigrade °c | fahrenheit: fahrenheit °f | kelvin: kelvin
kelvins | percent: % percent percentage pct | degree: ° degree degrees | usd: $ usd dollar dollars bucks us$ | eur: €
eur euro euros | gbp: £ gbp quid | jpy: ¥ jpy yen | cny: cny rmb yuan | inr: ₹ inr rupee rupees rs | cent: cent cents
| cad: cad | aud: aud | chf: chf franc francs | peso: peso pesos mxn | krone: krone kroner krona kronor sek nok dkk |
rub: ruble rubles rouble roubles rub | lira: lira liras | krw: krw | zloty: zloty zlotys pln | dirham: dirham dirhams
aed | riyal: riyal riyals sar | shekel: shekel shekels ils | zar: zar | brl: reais brl | naira: naira ngn | baht: baht
thb | ringgit: ringgit myr | rupiah: rupiah idr | forint: forint huf | koruna: koruna czk | sgd: sgd | hkd: hkd | nzd:
nzd | btc: btc bitcoin bitcoins | eth: eth ethereum | acre: acre acres | hectare: hectare hectares | sqft: sqft sq_ft
square_feet | sqm: m2 m² sqm square_meters | word_count: word words | page: page pages | line: line lines | paragraph:
paragraph paragraphs | sentence: sentence sentences | token: token tokens | lakh: lakh lakhs | crore: crore crores |
iu: iu | px: px pixel pixels | dpi: dpi | rpm: rpm | ppm: ppm | ppb: ppb | db: decibel decibels
"""

LANGUAGES = """
english: en inglés inglês anglais englisch 英语 英文 英語 | french: français francés francês französisch 法语 法文
フランス語 | german: deutsch allemand alemán alemão 德语 德文 ドイツ語 | spanish: español espagnol espanhol spanisch
castellano 西班牙语 スペイン語 | portuguese: português portugués portugais portugiesisch 葡萄牙语 ポルトガル語 |
italian: italiano italien italienisch 意大利语 イタリア語 | chinese: mandarin chino chinês chinois chinesisch 中文
汉语 中国語 | cantonese: 粤语 広東語 | japanese: japonés japonês japonais japanisch 日语 日文 日本語 | korean: coreano
coréen koreanisch 韩语 韓国語 | russian: ruso russo russe russisch 俄语 ロシア語 | arabic: árabe arabe arabisch
阿拉伯语 アラビア語 | hindi: 印地语 ヒンディー語 | urdu: | bengali: | punjabi: | tamil: | telugu: | marathi: |
turkish: turco turc türkisch 土耳其语 トルコ語 | polish: polaco polonês polonais polnisch 波兰语 ポーランド語 | dutch:
holandés holandês néerlandais niederländisch 荷兰语 オランダ語 | swedish: sueco suédois schwedisch | norwegian: |
danish: | finnish: | greek: | hebrew: | vietnamese: | thai: | indonesian: | malay: | latin: | ukrainian: | czech: |
hungarian: | romanian: | swahili: | persian: farsi | tagalog: filipino | python: python3 | javascript: js |
typescript: ts | java: | kotlin: | golang: | rust: | ruby: | php: | perl: | scala: | swift: | c++: cpp | c#: csharp |
haskell: | matlab: | bash: | powershell: | sql: | html: | css: | react: reactjs | vue: vuejs | angular: angularjs |
mysql: | postgres: postgresql | sqlite: | mongodb: mongo | oracle: | fortran: | cobol: | lua: | julia: | assembly: |
objective-c:
"""

FORMATS = """
json: | xml: | yaml: yml | csv: | markdown: md | plaintext: plain_text | latex: tex | pdf: | docx: | xlsx: | toml: |
jpg: jpeg | png: | gif: | svg: | mp3: | mp4: | wav: | table: tabla tabela tabelle tableau 表格 表 | bullets:
bullet_points bullets bulleted bullet | numbered: numbered_list | poem: poema poème gedicht 诗 詩 | haiku: 俳句 |
essay: ensayo ensaio essai aufsatz 作文 | limerick: | sonnet: | outline: | diagram: | chart: | flowchart: | regex:
regexp
"""
