"""Spanish words that the guards of `core.likeness` know. Data only; `lexicon.lexicon` says how it is written."""

STOP = """
encuentra encuentran queda está fue han ha he haber hay el la los las un una unos unas lo de del al a en y o u pero si
que qué quien quién cuál cual cuáles cuando cuándo donde dónde cómo como por para con sobre entre desde hasta hacia
según yo tú él ella nosotros ellos ellas usted ustedes me te se nos le les mi mis tu tus su sus nuestro nuestra es son
era eran ser soy está están estar estoy fue fueron sido he ha han haber hay había tengo tiene tienen tener puedo puede
pueden poder podría podrías debo debe deben quiero quiere quisiera gustaría necesito hacer hago hace haz dar dame
decir dime explicar explica explícame mostrar muéstrame ayudar ayuda ayúdame hola gracias favor saber posible manera
forma modo mejor mejores bueno buena este esta esto estos estas ese esa eso pregunta cosa algo también muy más aquí ir
va voy
"""

NEGATORS = """
excepto salvo no nunca jamás ningún ninguna ninguno nada nadie sin ni tampoco
"""

NEGATIVES = """
ilegal: legal | imposible: posible | inválido: válido | inválida: válida | incorrecto: correcto | incorrecta: correcta
| inseguro: seguro | prohibido: permitido | inactivo: activo | desconocido: conocido | incompatible: compatible |
inútil: útil
"""

FORMS = """
activar activo activa activado | desactivar desactivo desactiva desactivado | comprar compro compra | vender vendo
venta | abrir abro | cerrar cierro | eliminar elimino | añadir añado agregar agrego
"""

OPPOSITES = """
abre abren / cierra cierran | sube suben subir / baja bajan bajar | mayor mayores / menor menores | primero primera /
último última | importación / exportación | ganancia / pérdida | padre / madre | hijo / hija | hermano / hermana |
largo larga / corto corta | fuerte / débil | rico rica / pobre | cerca / lejos | lleno llena / vacío vacía | verano /
invierno | día / noche | amigo / enemigo | encender enciendo / apagar apago | iniciar_sesión / cerrar_sesión |
conectar / desconectar | prestar / pedir_prestado | depositar / retirar | aprobar aprobado / suspender suspendido |
verdadero / falso | seguro segura / peligroso peligrosa | posible / imposible | activar activo activa encender
habilitar / desactivar desactivo desactiva apagar deshabilitar | permitido permitir / prohibido prohibir | comprar
compro / vender vendo | abrir abro / cerrar cierro | antes / después | más / menos | grande grandes / pequeño pequeña
pequeños | mayor / menor | alto alta / bajo baja | ventaja ventajas / desventaja desventajas inconvenientes | bueno
buena / malo mala | mejor / peor | nuevo nueva / viejo vieja antiguo antigua | rápido rápida / lento lenta | añadir
agregar / eliminar quitar borrar | subir aumentar / bajar reducir disminuir | ganar / perder | contra / favor | con /
sin | máximo máxima / mínimo mínima | caliente / frío | izquierda / derecha | subir / descargar | importar / exportar
| instalar / desinstalar | enviar / recibir | bloquear / desbloquear | hombre hombres / mujer mujeres | fácil /
difícil | barato barata / caro cara | interior / exterior | público / privado | siempre / nunca | dentro / fuera |
entrada / salida
"""

SYNONYMS = """
archivo fichero | carpeta directorio | querer amar | borrar eliminar suprimir | ordenador computadora | coche carro
auto | móvil celular teléfono | precio coste costo | comenzar empezar iniciar | fundar fundó fundada | móvil celular
teléfono | coche carro auto | eliminar borrar quitar | activar encender habilitar | desactivar apagar deshabilitar |
precio costo coste
"""

QUESTIONS = """
when: a_qué_hora | why: cuál_es_la_razón por_qué_razón | who: quién quien quiénes | when: cuándo | where: dónde adónde
| why: por_qué | how: cómo | what: qué | which: cuál cuáles | how_much: cuánto cuánta | how_many: cuántos cuántas |
how_long: cuánto_tiempo | how_often: con_qué_frecuencia | how_old: cuántos_años
"""

QUANTIFIERS = """
all: todos todas cada todo toda | some: algunos algunas varios varias | only: solo sólo solamente únicamente | always:
siempre | sometimes: veces | rarely: raramente | often: frecuentemente | half: mitad medio media | average: promedio
"""

DEGREES = """
fast: más_rápido más_rápida | easy: más_fácil más_sencillo más_sencilla | cheap: más_barato más_barata | first:
primero primera primer | last: último última | large: más_grande | small: más_pequeño más_pequeña
"""

TIMES = """
now: ahora actualmente | today: hoy | yesterday: ayer | tomorrow: mañana | night: noche | evening: tarde | noon:
mediodía | midnight: medianoche | last: semana_pasada mes_pasado año_pasado | next: próxima_semana próximo_mes
próximo_año
"""

MONTHS = """
enero | febrero | marzo | abril | mayo | junio | julio | agosto | septiembre setiembre | octubre | noviembre |
diciembre
"""

WEEKDAYS = "lunes | martes | miércoles | jueves | viernes | sábado | domingo"

NUMBERS = """
cero:0 uno:1 dos:2 tres:3 cuatro:4 cinco:5 seis:6 siete:7 ocho:8 nueve:9 diez:10 once:11 doce:12 trece:13 catorce:14
quince:15 dieciséis:16 diecisiete:17 dieciocho:18 diecinueve:19 veinte:20 treinta:30 cuarenta:40 cincuenta:50
sesenta:60 setenta:70 ochenta:80 noventa:90 cien:x100 ciento:x100 cientos:x100 doscientos:200 trescientos:300
quinientos:500 mil:x1000 millón:x1000000 millones:x1000000
"""

ORDINALS = "primero:1 primera:1 primer:1 segundo:2 segunda:2 tercero:3 tercera:3 tercer:3 cuarto:4 quinto:5"

ROLES = """
from: desde de del | to: a al hacia hasta | with: con mediante | of: en para sobre durante por entre | and: y e o u
"""

UNITS = """
s: segundos | min: minuto minutos | h: hora horas | day: día días | week: semana semanas | month: mes meses | year:
año años | g: gramo gramos | kg: kilogramo kilogramos kilo kilos | l: litro litros | m: metro metros | km: kilómetro
kilómetros | mi: milla millas | lb: libra libras | eur: euro euros | usd: dólar dólares | percent: por_ciento
porciento
"""

FORMATS = """
short: brevemente breve corto corta | long: largo larga | detailed: detalle detalladamente detallada | one_sentence:
una_frase una_oración | simple: términos_sencillos palabras_sencillas | formal: formal | informal: informal | table:
tabla
"""
